//go:build stores

package stores

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lakesql/lakesql/engine"
	"github.com/lakesql/lakesql/internal/testutil"
	"github.com/lakesql/lakesql/source"
	"github.com/lakesql/lakesql/source/lance"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/object/cloud"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreCurrent(), goleak.IgnoreTopFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreTopFunction("net/http.(*persistConn).writeLoop"),
		goleak.IgnoreTopFunction("internal/poll.runtime_pollWait"))
}

const (
	bucket    = "parcels"
	accessKey = "lakesqlkey"
	secretKey = "lakesqlsecret"
)

// s3Server is a running server over folders of its own.
type s3Server struct {
	dir, side string
	addr      string
	cmd       *exec.Cmd
}

func startServer(t *testing.T) *s3Server {
	t.Helper()
	dir := t.TempDir()
	s := &s3Server{dir: filepath.Join(dir, "objects"), side: filepath.Join(dir, "side"), addr: freeAddr(t)}
	for _, d := range []string{filepath.Join(s.dir, bucket), s.side} {
		must(t, os.MkdirAll(d, 0o755))
	}
	s.start(t)
	t.Cleanup(func() { s.kill(t) })
	t.Setenv("AWS_ACCESS_KEY_ID", accessKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", secretKey)
	t.Setenv("AWS_REGION", "us-east-1")
	return s
}

// freeAddr is an address that was free a moment ago: the server takes no port 0.
func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer func() { must(t, l.Close()) }()
	return l.Addr().String()
}

func (s *s3Server) start(t *testing.T) {
	t.Helper()
	binary := filepath.Join(testutil.Root(t), ".cache", "stores", "versitygw")
	if _, err := os.Stat(binary); err != nil {
		t.Fatalf("the S3 server is missing, run test/stores/setup: %v", err)
	}
	s.cmd = exec.Command(binary, "--port", s.addr, "--access", accessKey, "--secret", secretKey, "--quiet", "posix", "--sidecar", s.side, s.dir)
	s.cmd.Stdout, s.cmd.Stderr = io.Discard, os.Stderr
	must(t, s.cmd.Start())
	for start := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		c, err := net.Dial("tcp", s.addr)
		if err == nil {
			_ = c.Close()
			return
		}
		if time.Since(start) > time.Minute {
			t.Fatalf("the S3 server does not listen: %v", err)
		}
	}
}

// kill ends the server at once, answers on their way included.
func (s *s3Server) kill(t *testing.T) {
	t.Helper()
	if s.cmd == nil {
		return
	}
	must(t, s.cmd.Process.Kill())
	_ = s.cmd.Wait() // says that it was killed
	s.cmd = nil
}

// url is a folder of the bucket.
func (s *s3Server) url(prefix string, params ...string) string {
	q := url.Values{"endpoint": {"http://" + s.addr}, "use_path_style": {"true"}}
	for i := 0; i < len(params); i += 2 {
		q.Set(params[i], params[i+1])
	}
	return "s3://" + bucket + "/" + prefix + "?" + q.Encode()
}

func (s *s3Server) open(t *testing.T, prefix string) object.Store {
	t.Helper()
	store, err := cloud.Open(context.Background(), s.url(prefix))
	must(t, err)
	return store
}

// upload copies datasets of testdata/lance into the bucket, small files whole and large ones in parts.
func (s *s3Server) upload(t *testing.T, prefix string, datasets ...string) {
	t.Helper()
	ctx := context.Background()
	store := s.open(t, prefix)
	defer func() { must(t, store.Close()) }()
	root := filepath.Join(testutil.Root(t), "testdata", "lance")
	for i, name := range datasets {
		must(t, filepath.WalkDir(filepath.Join(root, name+".lance"), func(p string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			rel, err := filepath.Rel(root, p)
			if err != nil {
				return err
			}
			content, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			if i%2 == 0 {
				return store.Put(ctx, filepath.ToSlash(rel), content, false)
			}
			w, err := store.Create(ctx, filepath.ToSlash(rel))
			if err != nil {
				return err
			}
			if _, err := w.Write(content); err != nil {
				return err
			}
			return w.Close()
		}))
	}
}

// openEngine opens an engine over one lake.
func openEngine(t *testing.T, store object.Store, remote bool) *engine.Engine {
	t.Helper()
	e, err := engine.Open(context.Background(), engine.Config{Catalogs: []source.Catalog{lance.Open("lake", store, lance.Options{Remote: remote})}})
	must(t, err)
	t.Cleanup(func() { must(t, e.Close()) })
	return e
}

// rowsOf runs a statement in a session of its own, after the settings, and returns its rows as text.
func rowsOf(ctx context.Context, e *engine.Engine, settings []string, text string) (out []string, err error) {
	s := e.NewSession(engine.SessionOptions{Database: "lake"})
	defer s.Close()
	for _, set := range settings {
		if err := s.QueryAll(ctx, set, func(*engine.Result) error { return nil }); err != nil {
			return nil, err
		}
	}
	err = s.QueryAll(ctx, text, func(res *engine.Result) error {
		rows, err := drain(res)
		out = append(out, rows...)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", strings.ReplaceAll(text, "\n", " "), err)
	}
	return out, nil
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
