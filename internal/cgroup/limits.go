package cgroup

import "strconv"

// Limits are the limits of a group. Zero is no limit.
type Limits struct {
	MilliCPU int64 // thousandths of a CPU
	Memory   int64 // bytes
	// MilliCPURequest is the weight of the group against others when CPUs are short. A group
	// that asks for nothing gets the least.
	MilliCPURequest int64

	parent bool // the group holds others
}

// Numbers of the kernel's interface.
const (
	period   = 100_000 // of the CPU limit, in microseconds
	minQuota = 1_000
	// maxMilliCPU is more than any machine has and less than the kernel takes.
	maxMilliCPU = 1_000_000
	minShares   = 2
	maxShares   = 1 << 18
	minWeight   = 1
	maxWeight   = 10_000
)

// setting is one file of a group. Settings of version 1 belong to a controller.
type setting struct {
	controller, file, value string
	optional                bool // not every kernel has the file
}

func (l Limits) settings(unified bool) []setting {
	shares := min(maxShares, max(minShares, min(l.MilliCPURequest, maxMilliCPU)*1024/1000))
	if unified {
		weight := minWeight + (shares-minShares)*(maxWeight-minWeight)/(maxShares-minShares)
		quota := "max"
		if l.MilliCPU > 0 {
			quota = number(l.quota())
		}
		return []setting{
			{file: "cpu.weight", value: number(weight)},
			{file: "cpu.max", value: quota + " " + number(period)},
			{file: "memory.max", value: orMax(l.Memory, "max")},
			// What is over the limit is killed, not swapped, and all of the container with it.
			{file: "memory.swap.max", value: noSwap(l.Memory), optional: true},
			{file: "memory.oom.group", value: l.killTogether(), optional: true},
		}
	}
	quota := "-1"
	if l.MilliCPU > 0 {
		quota = number(l.quota())
	}
	return []setting{
		{controller: "cpu", file: "cpu.shares", value: number(shares)},
		{controller: "cpu", file: "cpu.cfs_period_us", value: number(period), optional: true},
		{controller: "cpu", file: "cpu.cfs_quota_us", value: quota, optional: l.MilliCPU == 0},
		{controller: "memory", file: "memory.limit_in_bytes", value: orMax(l.Memory, "-1")},
	}
}

func (l Limits) quota() int64 { return max(minQuota, min(l.MilliCPU, maxMilliCPU)*period/1000) }

func orMax(value int64, none string) string {
	if value <= 0 {
		return none
	}
	return number(value)
}

func noSwap(limit int64) string {
	if limit <= 0 {
		return ""
	}
	return "0"
}

// killTogether ends a container as a whole, but not all containers of a pod.
func (l Limits) killTogether() string {
	if l.Memory <= 0 || l.parent {
		return ""
	}
	return "1"
}

func number(n int64) string { return strconv.FormatInt(n, 10) }
