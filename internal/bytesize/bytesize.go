// Package bytesize writes numbers of bytes for people.
package bytesize

import "fmt"

// Text is a number of bytes with the unit that fits, at four digits: "80 MiB", "1.5 GiB".
func Text(n uint64) string {
	const units = "KMGTPE"
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	value, unit := float64(n)/1024, 0
	for value >= 1024 && unit < len(units)-1 {
		value /= 1024
		unit++
	}
	return fmt.Sprintf("%.4g %ciB", value, units[unit])
}
