package guard

// SetWrite replaces what writes the file, for disks that do not answer.
func (g *Guard) SetWrite(write func(path string, content []byte) error) { g.write = write }
