package expr

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
)

func typeNamed(t testing.TB, name string) arrow.DataType {
	t.Helper()
	switch name {
	case "signed":
		return typeInt()
	case "unsigned":
		return typeUint()
	case "tinyint":
		return arrow.PrimitiveTypes.Int8
	case "double":
		return typeFloat()
	case "float":
		return arrow.PrimitiveTypes.Float32
	case "char":
		return typeString()
	case "date":
		return typeDate()
	case "datetime":
		return typeDatetime()
	case "datetime0":
		return &arrow.TimestampType{Unit: arrow.Second}
	case "time":
		return typeTime()
	case "decimal(5,2)":
		return rawDecimal(5, 2)
	case "decimal(30,2)":
		return rawDecimal(30, 2)
	case "decimal(20,6)":
		return rawDecimal(20, 6)
	}
	t.Fatal(name)
	return nil
}
