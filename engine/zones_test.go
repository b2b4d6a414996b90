package engine

import (
	"errors"
	"testing"
	"time"

	"github.com/lakesql/lakesql/internal/errs"
)

// TestAZoneIsLoadedOnceAndAFailureForAMomentIsNone: package time takes an interrupted read of a zone file for a zone that does not exist.
func TestAZoneIsLoadedOnceAndAFailureForAMomentIsNone(t *testing.T) {
	loads, failing := 0, 2
	z := &zones{load: func(name string) (*time.Location, error) {
		if loads++; loads <= failing {
			return nil, errors.New("interrupted system call")
		}
		return time.LoadLocation(name)
	}}
	first, err := z.find("Europe/Berlin")
	if err != nil || first.String() != "Europe/Berlin" {
		t.Fatalf("%v %v", first, err)
	}
	if again, err := z.find("Europe/Berlin"); err != nil || again != first || loads != 3 {
		t.Errorf("%v %v after %d loads", again, err, loads)
	}
	for range 2 { // an unknown one is not kept
		if _, err := z.find("Europe/Nowhere"); !errors.Is(err, errs.ErrInvalid) {
			t.Errorf("got %v", err)
		}
	}
	if loads != 9 || len(z.byName) != 1 {
		t.Errorf("%d loads, %d zones kept", loads, len(z.byName))
	}
}
