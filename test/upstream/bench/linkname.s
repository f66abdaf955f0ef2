// See syncBatch in theirs.go.
