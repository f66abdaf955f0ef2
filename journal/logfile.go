package journal

import "path/filepath"

// logFile is a file that commits are appended to. After an error of append it must not be
// used again: whether the commit is on the disk is unknown, and after a failed sync the
// kernel may have dropped what it could not write.
type logFile struct {
	file file
	// snapshot is the size of the snapshot that the file begins with, end is where the
	// next entry goes, size is where the reserve ends, and step by how much it grows.
	snapshot, end, size, step int64
}

// createLog writes a file that holds the image and a reserve, and gives it its name once
// it is complete: content first, then the name, then the directory that holds the name.
// Whenever the power fails, the name refers to the old file or to the new one. before runs
// between the first two. replaced reports whether the name may refer to the new file.
func createLog(d disk, path string, img image, reserve int64, before func() error) (l *logFile, replaced bool, err error) {
	data, err := img.snapshot().encode()
	if err != nil {
		return nil, false, err
	}
	temporary := path + temporarySuffix
	f, err := d.create(temporary)
	if err != nil {
		return nil, false, err
	}
	l = &logFile{file: f, snapshot: int64(len(data)), end: int64(len(data)), size: int64(len(data)), step: reserve}
	_, err = f.Write(data)
	if err == nil {
		err = l.extend(reserve) // this syncs
	}
	if err == nil {
		err = before()
	}
	if err == nil {
		err = d.rename(temporary, path)
		replaced = err == nil
	}
	if err == nil {
		err = d.syncDir(filepath.Dir(path))
	}
	if err == nil {
		return l, true, nil
	}
	if !replaced {
		_ = d.remove(temporary) // the next try overwrites it if this fails as well
	}
	_ = f.Close() // it is not used
	return nil, replaced, err
}

// append writes an entry, which must fit, and syncs it.
func (l *logFile) append(data []byte) error {
	if _, err := l.file.WriteAt(data, l.end); err != nil {
		return err
	}
	if err := l.file.Sync(); err != nil {
		return err
	}
	l.end += int64(len(data))
	return nil
}

// fits reports whether an entry of that size can be appended. Only deletions use the last
// part of the reserve, so that records can be deleted on a full disk.
func (l *logFile) fits(size int64, onlyDeletes bool) bool {
	keep := int64(minReserve)
	if !onlyDeletes {
		keep += l.step / 8
	}
	return l.end+size+keep <= l.size
}

// outgrown reports whether the commits take more room than the snapshot, so that writing
// the file again is worth it.
func (l *logFile) outgrown() bool {
	return l.end-l.snapshot >= max(l.snapshot, l.step/2)
}

// extend adds zeros to the reserve and syncs them before any entry is written there. If it
// fails, zeros may have been added, which changes nothing.
func (l *logFile) extend(by int64) error {
	if _, err := l.file.WriteAt(make([]byte, by), l.size); err != nil {
		return err
	}
	if err := l.file.Sync(); err != nil {
		return err
	}
	l.size += by
	return nil
}

func (l *logFile) close() error { return l.file.Close() }
