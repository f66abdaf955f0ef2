package kubeletapi

import "golang.org/x/sys/unix"

func peerHasClosed(socket uintptr) bool {
	info, err := unix.GetsockoptTCPInfo(int(socket), unix.IPPROTO_TCP, unix.TCP_INFO)
	return err == nil && info.State != unix.BPF_TCP_ESTABLISHED
}
