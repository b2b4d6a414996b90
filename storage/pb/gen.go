// Package pb holds the protobuf messages of the Lance format: the .proto files here, the Go code in the folders below.
package pb

//go:generate python3 -m grpc_tools.protoc -I . --go_out=. --go_opt=module=github.com/lakesql/lakesql/storage/pb lance_file.proto lance_encodings21.proto lance_encodings20.proto lance_table.proto lance_index.proto
