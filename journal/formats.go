package journal

import (
	"fmt"
	"maps"
)

// currentFormat is the format that this code writes.
//
//	1  a bbolt file; never released, and cannot be read
//	2  had records of the kind resize-statuses, which nothing read
//	3  finals say whether the end of a container is not proven
const currentFormat = 3

// formats brings the records of older formats up to the current one.
type formats struct {
	current int
	// upgrades maps a format to the step that makes the next one of it.
	upgrades map[int]func(image) (image, error)
}

func currentFormats() formats {
	return formats{current: currentFormat, upgrades: map[int]func(image) (image, error){2: withoutResizeStatuses}}
}

func withoutResizeStatuses(img image) (image, error) {
	records := maps.Clone(img.records)
	maps.DeleteFunc(records, func(k recordKey, _ []byte) bool { return k.kind == "resize-statuses" })
	return image{header: img.header, records: records}, nil
}

// upgrade returns the image in the current format. The caller writes it to a new file, so
// that the old one stays whole until the new one is complete.
func (f formats) upgrade(img image) (image, error) {
	for img.header.Format < f.current {
		step, ok := f.upgrades[img.header.Format]
		if !ok {
			return image{}, fmt.Errorf("no upgrade from format %d", img.header.Format)
		}
		next, err := step(img)
		if err != nil {
			return image{}, fmt.Errorf("upgrade from format %d: %w", img.header.Format, err)
		}
		next.header.Format = img.header.Format + 1
		img = next
	}
	return img, nil
}
