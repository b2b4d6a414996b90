package schema

import (
	"errors"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"google.golang.org/protobuf/proto"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage/pb/filepb"
)

func field(name string, t arrow.DataType) arrow.Field {
	return arrow.Field{Name: name, Type: t, Nullable: true}
}

func TestLogicalTypesMapBothWays(t *testing.T) {
	i32, f32, s := arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Float32, arrow.BinaryTypes.String
	st := arrow.StructOf(field("x", i32), field("y", s))
	for _, tc := range []struct {
		logical string // of the top field and, after spaces, of its descendants
		arrow   arrow.DataType
	}{
		{"null", arrow.Null},
		{"bool", arrow.FixedWidthTypes.Boolean},
		{"int8", arrow.PrimitiveTypes.Int8}, {"uint8", arrow.PrimitiveTypes.Uint8},
		{"int16", arrow.PrimitiveTypes.Int16}, {"uint16", arrow.PrimitiveTypes.Uint16},
		{"int32", i32}, {"uint32", arrow.PrimitiveTypes.Uint32},
		{"int64", arrow.PrimitiveTypes.Int64}, {"uint64", arrow.PrimitiveTypes.Uint64},
		{"halffloat", arrow.FixedWidthTypes.Float16}, {"float", f32}, {"double", arrow.PrimitiveTypes.Float64},
		{"string", s}, {"large_string", arrow.BinaryTypes.LargeString},
		{"binary", arrow.BinaryTypes.Binary}, {"large_binary", arrow.BinaryTypes.LargeBinary},
		{"date32:day", arrow.FixedWidthTypes.Date32}, {"date64:ms", arrow.FixedWidthTypes.Date64},
		{"time32:s", arrow.FixedWidthTypes.Time32s}, {"time32:ms", arrow.FixedWidthTypes.Time32ms},
		{"time64:us", arrow.FixedWidthTypes.Time64us}, {"time64:ns", arrow.FixedWidthTypes.Time64ns},
		{"timestamp:us:-", &arrow.TimestampType{Unit: arrow.Microsecond}},
		{"timestamp:ms:UTC", &arrow.TimestampType{Unit: arrow.Millisecond, TimeZone: "UTC"}},
		{"timestamp:s:+05:30", &arrow.TimestampType{Unit: arrow.Second, TimeZone: "+05:30"}},
		{"timestamp:ns:America/New_York", &arrow.TimestampType{Unit: arrow.Nanosecond, TimeZone: "America/New_York"}},
		{"duration:s", arrow.FixedWidthTypes.Duration_s}, {"duration:ms", arrow.FixedWidthTypes.Duration_ms},
		{"duration:us", arrow.FixedWidthTypes.Duration_us}, {"duration:ns", arrow.FixedWidthTypes.Duration_ns},
		{"decimal:128:38:0", &arrow.Decimal128Type{Precision: 38}},
		{"decimal:128:12:-2", &arrow.Decimal128Type{Precision: 12, Scale: -2}},
		{"decimal:256:76:10", &arrow.Decimal256Type{Precision: 76, Scale: 10}},
		{"fixed_size_binary:16", &arrow.FixedSizeBinaryType{ByteWidth: 16}},
		{"fixed_size_list:float:128", arrow.FixedSizeListOf(128, f32)},
		{"fixed_size_list:bool:3", arrow.FixedSizeListOf(3, arrow.FixedWidthTypes.Boolean)},
		{"fixed_size_list:timestamp:s:+05:30:2", arrow.FixedSizeListOf(2, &arrow.TimestampType{Unit: arrow.Second, TimeZone: "+05:30"})},
		{"fixed_size_list:fixed_size_list:float:2:3", arrow.FixedSizeListOf(3, arrow.FixedSizeListOf(2, f32))},
		{"fixed_size_list:lance.bfloat16:8", arrow.FixedSizeListOfField(8, arrow.Field{
			Name: "item", Nullable: true, Type: &arrow.FixedSizeBinaryType{ByteWidth: 2},
			Metadata: arrow.NewMetadata([]string{extensionNameKey}, []string{bfloat16Extension}),
		})},
		{"fixed_size_list:struct:2 struct int32 string", arrow.FixedSizeListOf(2, st)},
		{"list int32", arrow.ListOf(i32)},
		{"large_list string", arrow.LargeListOf(s)},
		{"list list int32", arrow.ListOf(arrow.ListOf(i32))},
		{"list.struct struct int32 string", arrow.ListOf(st)},
		{"large_list.struct struct int32 string", arrow.LargeListOf(st)},
		{"struct int32 string", st},
		{"struct", arrow.StructOf()},
		{"map struct string int32", arrow.MapOf(s, i32)},
		{"dict:string:int32:false", &arrow.DictionaryType{IndexType: i32, ValueType: s}},
		{"dict:timestamp:us:UTC:uint8:true", &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Uint8,
			ValueType: &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}, Ordered: true}},
		{"list dict:large_string:int8:false", arrow.ListOf(&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.LargeString})},
	} {
		t.Run(tc.logical, func(t *testing.T) {
			in := arrow.NewSchema([]arrow.Field{field("first", i32), field("c", tc.arrow)}, nil)
			s, err := FromArrow(in)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for f := range s.Fields[1].All() {
				names = append(names, f.Logical)
			}
			if got := strings.Join(names, " "); got != tc.logical {
				t.Fatalf("spelled %q, want %q", got, tc.logical)
			}
			back, err := FromProto(s.ToProto(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if !back.Arrow().Equal(in) {
				t.Fatalf("came back as\n%s\nwant\n%s", back.Arrow(), in)
			}
			if !arrow.TypeEqual(back.Fields[1].Type, tc.arrow, arrow.CheckMetadata()) {
				t.Fatalf("came back as %s", back.Fields[1].Type)
			}
		})
	}
}

func TestJSONIsAnExtensionOfLargeBinary(t *testing.T) {
	s, err := FromProto([]*filepb.Field{{Name: "j", LogicalType: "json", ParentId: -1, Nullable: true}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	again, err := FromArrow(s.Arrow())
	if err != nil || again.Fields[0].Logical != "json" || again.Fields[0].Type.ID() != arrow.LARGE_BINARY {
		t.Fatalf("json became %+v, %v", again, err)
	}
}

func TestIDsRunDepthFirst(t *testing.T) {
	s, err := FromArrow(arrow.NewSchema([]arrow.Field{
		field("a", arrow.ListOf(arrow.BinaryTypes.String)),
		field("b", arrow.StructOf(field("x", arrow.PrimitiveTypes.Int8), field("y", arrow.ListOf(arrow.PrimitiveTypes.Int8)))),
	}, nil))
	if err != nil {
		t.Fatal(err)
	}
	var got []int32
	for f := range s.All() {
		got = append(got, f.ID)
	}
	for i, id := range got {
		if int(id) != i {
			t.Fatalf("ids %v", got)
		}
	}
	var leaves []string
	for _, f := range s.Fields[1].Leaves() {
		leaves = append(leaves, f.Name)
	}
	if strings.Join(leaves, ",") != "x,item" {
		t.Fatalf("leaves %v", leaves)
	}
	if f, ok := s.ByID(2); !ok || f.Name != "b" || s.MaxID() != 5 {
		t.Fatalf("field 2 is %v of %d", f, s.MaxID())
	}
	if _, ok := s.Lookup("B"); ok {
		t.Fatal("names are compared without case")
	}
}

func TestFieldsThatMakeNoSense(t *testing.T) {
	top := func(name, logical string) *filepb.Field {
		return &filepb.Field{Name: name, LogicalType: logical, ParentId: -1, Id: 100}
	}
	child := func(id, parent int32, logical string) *filepb.Field {
		return &filepb.Field{Name: "item", Id: id, ParentId: parent, LogicalType: logical}
	}
	deep := []*filepb.Field{top("d", "list")}
	for i := range int32(DepthMax) {
		deep = append(deep, child(101+i, 100+i, "list"))
	}
	for _, tc := range []struct {
		name   string
		fields []*filepb.Field
		kind   error
		text   string // in the error
	}{
		{"an unknown type names field and type", []*filepb.Field{top("geo", "geometry")}, errs.ErrUnsupported, `field "geo": type "geometry" is not supported`},
		{"an unknown element type names both", []*filepb.Field{top("v", "fixed_size_list:posit:4")}, errs.ErrUnsupported, `type "posit"`},
		{"a nested unknown type names its path", []*filepb.Field{top("l", "list"), child(1, 100, "what")}, errs.ErrUnsupported, `field "l.item": type "what"`},
		{"a semantic decimal without a width", []*filepb.Field{top("d", "decimal:12:2")}, errs.ErrUnsupported, "decimal:12:2"},
		{"a dictionary of lists", []*filepb.Field{top("d", "dict:list:int32:false")}, errs.ErrUnsupported, "list"},
		{"a dictionary with float keys", []*filepb.Field{top("d", "dict:string:float:false")}, errs.ErrUnsupported, "keys"},
		{"a vector of strings", []*filepb.Field{top("v", "fixed_size_list:string:4")}, errs.ErrUnsupported, "string"},
		{"a precision beyond the width", []*filepb.Field{top("d", "decimal:128:39:0")}, errs.ErrCorrupt, "precision"},
		{"a vector of no elements", []*filepb.Field{top("v", "fixed_size_list:float:0")}, errs.ErrCorrupt, "size"},
		{"a vector of a negative length", []*filepb.Field{top("v", "fixed_size_list:float:-1")}, errs.ErrCorrupt, "size"},
		{"a vector larger than any memory", []*filepb.Field{top("v", "fixed_size_list:fixed_size_list:double:100000:100000")}, errs.ErrCorrupt, "size"},
		{"a type string nested without end", []*filepb.Field{top("v", strings.Repeat("fixed_size_list:", 100)+"float"+strings.Repeat(":1", 100))}, errs.ErrCorrupt, "nested"},
		{"a list without an item", []*filepb.Field{top("l", "list")}, errs.ErrCorrupt, "0 children"},
		{"a list of two items", []*filepb.Field{top("l", "list"), child(1, 100, "int8"), child(2, 100, "int8")}, errs.ErrCorrupt, "2 children"},
		{"a scalar with a child", []*filepb.Field{top("l", "int8"), child(1, 100, "int8")}, errs.ErrCorrupt, "1 children"},
		{"a map whose entries are no struct", []*filepb.Field{top("m", "map"), child(1, 100, "int8")}, errs.ErrCorrupt, "entries"},
		{"the same id twice", []*filepb.Field{top("a", "int8"), top("b", "int8")}, errs.ErrCorrupt, "id 100 twice"},
		{"the same name twice", []*filepb.Field{top("a", "int8"), {Name: "a", LogicalType: "int8", ParentId: -1, Id: 7}}, errs.ErrCorrupt, `"a"`},
		{"a child before its parent", []*filepb.Field{child(1, 100, "int8"), top("l", "list")}, errs.ErrCorrupt, "parent 100"},
		{"its own parent", []*filepb.Field{child(1, 1, "list")}, errs.ErrCorrupt, "parent 1"},
		{"a negative id", []*filepb.Field{{Name: "a", Id: -5, ParentId: -1, LogicalType: "int8"}}, errs.ErrCorrupt, "id -5"},
		{"a tree without end", deep, errs.ErrCorrupt, "deeper"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := FromProto(tc.fields, nil)
			if !errors.Is(err, tc.kind) || !strings.Contains(err.Error(), tc.text) {
				t.Fatalf("got %v, want %v with %q", err, tc.kind, tc.text)
			}
		})
	}
}

func TestArrowSchemasThatCannotBeStored(t *testing.T) {
	for _, tc := range []struct {
		name string
		t    arrow.DataType
	}{
		{"a vector of strings", arrow.FixedSizeListOf(2, arrow.BinaryTypes.String)},
		{"a dictionary of lists", &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.ListOf(arrow.PrimitiveTypes.Int8)}},
		{"an interval", arrow.FixedWidthTypes.MonthInterval},
		{"a union", arrow.SparseUnionOf(nil, nil)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := FromArrow(arrow.NewSchema([]arrow.Field{field("odd", tc.t)}, nil))
			if !errors.Is(err, errs.ErrUnsupported) || !strings.Contains(err.Error(), `"odd"`) {
				t.Fatalf("got %v", err)
			}
		})
	}
	_, err := FromArrow(arrow.NewSchema([]arrow.Field{field("a", arrow.Null), field("a", arrow.Null)}, nil))
	if !errors.Is(err, errs.ErrInvalid) {
		t.Fatalf("two fields of one name: %v", err)
	}
}

// FuzzFromProto: a schema from any bytes is an error of a known kind or survives a round trip.
func FuzzFromProto(f *testing.F) {
	s, err := FromArrow(arrow.NewSchema([]arrow.Field{
		field("l", arrow.ListOf(arrow.StructOf(field("x", arrow.FixedSizeListOf(4, arrow.PrimitiveTypes.Float32))))),
		field("m", arrow.MapOf(arrow.BinaryTypes.String, &arrow.Decimal256Type{Precision: 40, Scale: 3})),
		field("d", &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}),
	}, nil))
	if err != nil {
		f.Fatal(err)
	}
	seed, err := proto.Marshal(&filepb.Schema{Fields: s.ToProto()})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Fuzz(func(t *testing.T, b []byte) {
		var pb filepb.Schema
		if proto.Unmarshal(b, &pb) != nil {
			return
		}
		s, err := FromProto(pb.GetFields(), pb.GetMetadata())
		if err != nil {
			if !errors.Is(err, errs.ErrCorrupt) && !errors.Is(err, errs.ErrUnsupported) {
				t.Fatalf("unexpected kind: %v", err)
			}
			return
		}
		again, err := FromProto(s.ToProto(), nil)
		if err != nil {
			t.Fatalf("no round trip: %v", err)
		}
		if !again.Arrow().Equal(arrow.NewSchema(s.Arrow().Fields(), nil)) {
			t.Fatalf("changed:\n%s\n%s", again.Arrow(), s.Arrow())
		}
	})
}
