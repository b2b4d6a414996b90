package file

import (
	"math"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/pb/encpb"
)

// Type URLs of page encodings; the leading slash without a host is what writers put.
const (
	urlPageLayout    = "/lance.encodings21.PageLayout"
	urlArrayEncoding = "/lance.encodings.ArrayEncoding"
)

// compiledPage is a page whose encoding was checked against a leaf.
type compiledPage struct {
	plan   *leafPlan
	reader pageReader
}

// open returns the reader of the page, compiled at the first touch.
func (p *page) open(l *leafPlan) (pageReader, error) {
	if c := p.layout.Load(); c != nil && c.plan.same(l) {
		return c.reader, nil
	}
	compile := p.compile
	switch {
	case l.v20 && l.specs[0].List:
		compile = p.compileV20List
	case l.v20:
		compile = p.compileV20
	}
	rd, err := compile(l)
	if err != nil {
		return nil, inPage(err, p)
	}
	p.layout.Store(&compiledPage{plan: l, reader: rd})
	return rd, nil
}

func (p *page) compile(l *leafPlan) (pageReader, error) {
	if !strings.EqualFold(p.url, urlPageLayout) {
		return nil, errs.New(errs.ErrUnsupported, "encoding %q is not supported here", p.url)
	}
	if p.rows > math.MaxInt32 {
		return nil, errs.New(errs.ErrUnsupported, "a page of %d rows is not supported", p.rows)
	}
	var layout encpb.PageLayout
	if err := proto.Unmarshal(p.encoding, &layout); err != nil {
		return nil, errs.Corrupt("layout", -1, "%w", err)
	}
	switch k := layout.GetLayout().(type) {
	case *encpb.PageLayout_MiniBlockLayout:
		return newMiniPage(p, l, k.MiniBlockLayout)
	case *encpb.PageLayout_FullZipLayout:
		return newZipPage(p, l, k.FullZipLayout)
	case *encpb.PageLayout_ConstantLayout:
		return newConstantPage(p, l, k.ConstantLayout)
	case *encpb.PageLayout_BlobLayout:
		return nil, errs.New(errs.ErrUnsupported, "blob pages are not supported")
	case *encpb.PageLayout_SparseLayout:
		return nil, errs.New(errs.ErrUnsupported, "sparse pages (file version 2.3) are not supported")
	default:
		return nil, errs.Corrupt("layout", -1, "no page layout")
	}
}

// within returns the part [from, from+size) of a buffer of the page.
func within(b object.Range, from, size int64) object.Range {
	return object.Range{Offset: b.Offset + from, Size: size}
}
