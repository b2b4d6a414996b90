package provider

import (
	"fmt"
	"time"

	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/shopspring/decimal"

	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/internal/errs"
)

const microsPerSecond = 1_000_000

// Literal returns the constant of a value of go-mysql-server. Integers become BIGINT, signed or unsigned, decimals keep their digits.
// ErrUnsupported for values that have no Arrow form.
func Literal(ctx *sql.Context, v any, t sql.Type) (*expr.Literal, error) { //nolint:funlen // a flat switch
	switch x := v.(type) {
	case nil:
		return expr.NewLiteral(nil)
	case bool:
		return expr.NewLiteral(x)
	case int8:
		if t == types.Boolean {
			return expr.NewLiteral(int64(x))
		}
		return expr.NewLiteral(int64(x))
	case int16:
		return expr.NewLiteral(int64(x))
	case int32:
		return expr.NewLiteral(int64(x))
	case int:
		return expr.NewLiteral(int64(x))
	case int64:
		return expr.NewLiteral(x)
	case uint8:
		return expr.NewLiteral(int64(x))
	case uint16:
		return expr.NewLiteral(int64(x))
	case uint32:
		return expr.NewLiteral(int64(x))
	case uint:
		return unsigned(uint64(x), t)
	case uint64:
		return unsigned(x, t)
	case float32:
		return expr.NewLiteral(float64(x))
	case float64:
		return expr.NewLiteral(x)
	case decimal.Decimal:
		return decimalLiteral(x, t)
	case string:
		return expr.NewLiteral(x)
	case []byte:
		return expr.NewLiteral(x)
	case time.Time:
		return timeLiteral(x, t)
	case types.Timespan:
		return expr.NewLiteral(expr.Time(x))
	case sql.JSONWrapper:
		text, err := types.JsonToMySqlString(x)
		if err != nil {
			return nil, fmt.Errorf("JSON value: %w", err)
		}
		return expr.NewLiteral(text)
	}
	return nil, errs.New(errs.ErrUnsupported, "a constant of type %s cannot be used here", t)
}

// unsigned keeps what a signed BIGINT holds signed, as MySQL types its integer literals, unless the value was declared unsigned.
func unsigned(x uint64, t sql.Type) (*expr.Literal, error) {
	if x <= 1<<63-1 && t != types.Uint64 {
		return expr.NewLiteral(int64(x))
	}
	return expr.NewLiteral(x)
}

// decimalLiteral keeps the scale that the value was written with.
func decimalLiteral(d decimal.Decimal, t sql.Type) (*expr.Literal, error) {
	scale := max(-d.Exponent(), 0)
	if dt, ok := t.(sql.DecimalType); ok && int32(dt.Scale()) > scale && dt.Precision() < types.DecimalTypeMaxPrecision {
		scale = int32(dt.Scale())
	}
	return expr.ParseDecimal(d.StringFixed(scale))
}

func timeLiteral(x time.Time, t sql.Type) (*expr.Literal, error) {
	civil := time.Date(x.Year(), x.Month(), x.Day(), x.Hour(), x.Minute(), x.Second(), x.Nanosecond(), time.UTC)
	if t == types.Date {
		return expr.NewLiteral(expr.Date(civil.Unix() / 86400))
	}
	return expr.NewLiteral(expr.Datetime(civil.Unix()*microsPerSecond + int64(civil.Nanosecond())/1000))
}
