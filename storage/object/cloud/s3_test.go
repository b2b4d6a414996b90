package cloud

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"gocloud.dev/blob"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage/object"
)

// fakeS3 answers as much of the protocol as writes and reads of whole objects need.
type fakeS3 struct {
	mu      sync.Mutex
	objects map[string]string
	puts    int
	// refuse is asked before each conditional write; nil = nobody looks at conditions.
	refuse func(exists bool) (status int, code string)
	hang   chan struct{} // if not nil, reads wait for it
}

func (f *fakeS3) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	f.mu.Lock()
	defer f.mu.Unlock()
	content, exists := f.objects[r.URL.Path]
	switch r.Method {
	case http.MethodPut:
		f.puts++
		if f.refuse != nil && r.Header.Get("If-None-Match") == "*" {
			if status, code := f.refuse(exists); status != 0 {
				w.WriteHeader(status)
				_, _ = io.WriteString(w, "<Error><Code>"+code+"</Code><Message>no</Message></Error>")
				return
			}
		}
		f.objects[r.URL.Path] = string(body)
		w.Header().Set("ETag", `"x"`)
	case http.MethodDelete:
		delete(f.objects, r.URL.Path)
		w.WriteHeader(http.StatusNoContent)
	default:
		if f.hang != nil {
			f.mu.Unlock()
			<-f.hang
			f.mu.Lock()
		}
		if !exists {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_, _ = io.WriteString(w, content)
	}
}

func openFake(t *testing.T, f *fakeS3, opts Options) *Blob {
	t.Helper()
	f.objects = make(map[string]string)
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	bucket, err := blob.OpenBucket(context.Background(), "s3://bucket?region=us-east-1&use_path_style=true&endpoint="+url.QueryEscape(server.URL))
	must(t, err)
	s := OpenBlob(bucket, "s3://bucket", opts)
	t.Cleanup(func() { must(t, s.Close()) })
	return s
}

// TestStoresWithoutConditionalWritesAreRefusedByName: a store that takes no notice of the condition, or says that it has none, is found out before anything is overwritten.
func TestStoresWithoutConditionalWritesAreRefusedByName(t *testing.T) {
	ctx := context.Background()
	for name, refuse := range map[string]func(bool) (int, string){
		"it ignores them":    nil,
		"it says it has not": func(bool) (int, string) { return http.StatusNotImplemented, "NotImplemented" },
	} {
		t.Run(name, func(t *testing.T) {
			f := &fakeS3{refuse: refuse}
			s := openFake(t, f, Options{})
			for range 2 {
				err := s.Put(ctx, "t/_versions/1.manifest", []byte("mine"), true)
				if !errors.Is(err, errs.ErrUnsupported) || !strings.Contains(err.Error(), "s3://bucket") {
					t.Fatalf("got %v", err)
				}
			}
			if len(f.objects) != 0 {
				t.Errorf("left behind: %v", f.objects)
			}
			must(t, s.Put(ctx, "t/data", []byte("any"), false)) // without a condition it is as good as others
		})
	}
}

func TestAConditionalWriteIsTriedOnce(t *testing.T) {
	ctx := context.Background()
	f := &fakeS3{refuse: func(exists bool) (int, string) {
		if exists {
			return http.StatusPreconditionFailed, "PreconditionFailed"
		}
		return 0, ""
	}}
	s := openFake(t, f, Options{})
	must(t, s.Put(ctx, "a", []byte("1"), true))
	must(t, s.Put(ctx, "b", []byte("1"), true))
	if err := s.Put(ctx, "a", []byte("2"), true); !errors.Is(err, errs.ErrExists) {
		t.Fatal(err)
	}
	if f.puts != 5 || len(f.objects) != 2 || f.objects["/bucket/a"] != "1" {
		t.Errorf("%d writes, %v", f.puts, f.objects)
	}
}

func TestAStoreThatStoppedAnsweringIsAnError(t *testing.T) {
	ctx := context.Background()
	f := &fakeS3{hang: make(chan struct{})}
	s := openFake(t, f, Options{RequestWait: 200 * time.Millisecond})
	defer close(f.hang)
	file, err := s.OpenSized(ctx, "a", 10)
	must(t, err)
	_, read := file.Read(ctx, object.Range{Size: 5})
	_, opened := s.Open(ctx, "a")
	_, listed := s.List(ctx, "a")
	for what, err := range map[string]error{"read": read, "open": opened, "list": listed} {
		if !errors.Is(err, errs.ErrIO) || !strings.Contains(err.Error(), "did not answer within 200ms") {
			t.Errorf("%s: %v", what, err)
		}
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := s.Open(ended, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled caller is told %v", err)
	}
}
