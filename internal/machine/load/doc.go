// Package load reads how much of its resources a machine uses: CPU, memory, disks, PIDs, file
// descriptors, pressure and network errors, and CPU and memory of each pod by its control group.
//
// A [Reader] computes rates from one reading to the next. What cannot be read is named in
// [Load.Problems]; the rest is there.
package load
