// Package clients runs the MySQL clients that people use against the server: the MariaDB command line, mysql2, PyMySQL, SQLAlchemy, Connector/J and
// go-sql-driver. All of them must get the engine's own answers, in the text protocol and as prepared statements.
//
// go-sql-driver, what BI tools ask when they connect (bi_test.go) and the plan of the opening statement are tested everywhere. The other clients have the
// build tag clients; test/clients/setup installs them in the versions that requirements.txt, package.json and pom.xml pin:
//
//	test/clients/setup && go test -tags clients ./test/clients
//
// A missing client fails the tests. A client reads one statement a line: name, mode (text, prepared or cursor), the statement in base64, then its
// parameters, each a letter (s text, i integer, u unsigned integer, f float, d decimal, t time, b bytes, n NULL), a colon and base64. It answers with one JSON object a line: name,
// mode, and columns and rows, or code, state and message. A cell is text or null; bytes are hexadecimal.
//
// Start at statements_test.go for what is asked, compare_test.go for how answers are compared.
package clients
