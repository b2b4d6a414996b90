// Package interop runs the reference engine against tables that lakesql wrote, and lakesql against what the engine made of them.
//
// It has the build tag interop and needs the engines:
//
//	python3 -m venv DIR && DIR/bin/pip install -r test/interop/requirements.txt
//	npm ci --prefix test/interop --ignore-scripts
//	LAKESQL_PYTHON=DIR/bin/python go test -tags interop ./test/interop
//
// A missing engine fails the tests. Start at engine.go for the requests (engine.py and engine.mjs answer them), then at the Test functions.
package interop
