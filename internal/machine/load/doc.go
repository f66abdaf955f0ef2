// Package load reads how much of its resources a machine uses: CPU, memory, disks, PIDs, file
// descriptors, pressure and network errors, and CPU and memory of each pod by its control group.
//
// A [Reader] computes rates from one reading to the next. [Load.Problems] names unreadable values;
// the other values are present.
package load
