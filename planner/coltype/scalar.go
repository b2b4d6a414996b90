package coltype

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/internal/errs"
)

func plain(t arrow.DataType) (Type, error) { return Type{Arrow: t}, nil }

// scalarType maps the types of MySQL.
func scalarType(word string, args []string, unsigned bool) (Type, error) { //nolint:funlen // a flat switch
	numbers := make([]int, len(args))
	for i, a := range args {
		n, err := strconv.Atoi(a)
		if err != nil || n < 0 {
			return Type{}, errs.New(errs.ErrInvalid, "%q is no length", a)
		}
		numbers[i] = n
	}
	first := func(otherwise int) int {
		if len(numbers) > 0 {
			return numbers[0]
		}
		return otherwise
	}
	switch word {
	case "bool", "boolean":
		return plain(arrow.FixedWidthTypes.Boolean)
	case "tinyint":
		if first(0) == 1 && !unsigned {
			return plain(arrow.FixedWidthTypes.Boolean)
		}
		return integer(arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Uint8, unsigned)
	case "smallint":
		return integer(arrow.PrimitiveTypes.Int16, arrow.PrimitiveTypes.Uint16, unsigned)
	case "mediumint":
		t, err := integer(arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Uint32, unsigned)
		t.Declared = "mediumint"
		return t, err
	case "int", "integer":
		return integer(arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Uint32, unsigned)
	case "bigint":
		return integer(arrow.PrimitiveTypes.Int64, arrow.PrimitiveTypes.Uint64, unsigned)
	case "year":
		return Type{Arrow: arrow.PrimitiveTypes.Uint16, Declared: "year"}, nil
	case "float":
		if len(numbers) == 1 && numbers[0] > 24 {
			return plain(arrow.PrimitiveTypes.Float64)
		}
		return plain(arrow.PrimitiveTypes.Float32)
	case "double", "real":
		return plain(arrow.PrimitiveTypes.Float64)
	case "decimal", "numeric", "dec", "fixed":
		return decimal(numbers, unsigned)
	case "date":
		return plain(arrow.FixedWidthTypes.Date32)
	case "datetime", "timestamp", "time":
		return temporal(word, first(0))
	case "json":
		return Type{Arrow: arrow.BinaryTypes.String, Declared: "json"}, nil
	case "char", "varchar", "character", "nchar", "nvarchar", "string":
		return chars(word, numbers)
	case "tinytext", "text", "mediumtext":
		return Type{Arrow: arrow.BinaryTypes.String, Declared: word}, nil
	case "longtext":
		return plain(arrow.BinaryTypes.LargeString)
	case "binary", "varbinary":
		if word == "varbinary" && len(numbers) == 0 {
			return plain(arrow.BinaryTypes.Binary)
		}
		return Type{Arrow: arrow.BinaryTypes.Binary, Declared: fmt.Sprintf("%s(%d)", word, first(1))}, nil
	case "tinyblob", "blob", "mediumblob":
		return Type{Arrow: arrow.BinaryTypes.Binary, Declared: word}, nil
	case "longblob":
		return plain(arrow.BinaryTypes.LargeBinary)
	case "enum", "set", "bit", "geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon", "geometrycollection", "serial":
		return Type{}, errs.New(errs.ErrUnsupported, "columns of type %s are not supported", strings.ToUpper(word))
	}
	return Type{}, errs.New(errs.ErrInvalid, "there is no type %s", strings.ToUpper(word))
}

func integer(signed, unsigned arrow.DataType, isUnsigned bool) (Type, error) {
	if isUnsigned {
		return plain(unsigned)
	}
	return plain(signed)
}

func decimal(numbers []int, unsigned bool) (Type, error) {
	p, s := decimalDefault, 0
	if len(numbers) > 0 {
		p = numbers[0]
	}
	if len(numbers) > 1 {
		s = numbers[1]
	}
	if p < 1 || p > decimalMax || s > 30 || s > p {
		return Type{}, errs.New(errs.ErrInvalid, "DECIMAL(%d,%d); at most 65 digits and 30 of them behind the point", p, s)
	}
	if unsigned {
		return Type{}, errs.New(errs.ErrUnsupported, "DECIMAL UNSIGNED")
	}
	if p > decimal128Max {
		return plain(&arrow.Decimal256Type{Precision: int32(p), Scale: int32(s)})
	}
	return plain(&arrow.Decimal128Type{Precision: int32(p), Scale: int32(s)})
}

// temporal keeps microseconds in every case; fewer digits are declared, and values are rounded to them.
func temporal(word string, digits int) (Type, error) {
	if digits > micros {
		return Type{}, errs.New(errs.ErrInvalid, "%s(%d): at most 6 digits of a second", strings.ToUpper(word), digits)
	}
	var t Type
	switch word {
	case "datetime":
		t.Arrow = &arrow.TimestampType{Unit: arrow.Microsecond}
	case "timestamp":
		t.Arrow = &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}
	default:
		t.Arrow = arrow.FixedWidthTypes.Time64us
	}
	if digits < micros {
		t.Declared = word
		if digits > 0 {
			t.Declared += fmt.Sprintf("(%d)", digits)
		}
	}
	return t, nil
}

func chars(word string, numbers []int) (Type, error) {
	name := "varchar"
	if word == "char" || word == "nchar" || word == "character" {
		name = "char"
		if len(numbers) == 0 {
			numbers = []int{1}
		}
	}
	if len(numbers) == 0 { // VARCHAR alone, in LIST<VARCHAR>: as long as it likes
		return plain(arrow.BinaryTypes.String)
	}
	if name == "char" && numbers[0] > charsMax || numbers[0] > varcharMax {
		return Type{}, errs.New(errs.ErrInvalid, "%s(%d) is too long: use TEXT or LONGTEXT", strings.ToUpper(name), numbers[0])
	}
	return Type{Arrow: arrow.BinaryTypes.String, Declared: fmt.Sprintf("%s(%d)", name, numbers[0])}, nil
}
