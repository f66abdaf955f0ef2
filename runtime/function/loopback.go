package function

import (
	"hash/fnv"
	"net"

	v1 "k8s.io/api/core/v1"
)

// Loopback returns a loopback address for the pod, derived from the pod's UID: pods of one program that listen on the same
// port do not collide. Use it as [Options].IPs. The address can be reached from the same machine only. On Linux all
// addresses in 127.0.0.0/8 can be listened on; other systems need an alias for each address.
func Loopback(pod *v1.Pod) []string {
	hash := fnv.New32a()
	hash.Write([]byte(pod.UID))
	sum := hash.Sum32() // the bits that are set or cleared keep 127.0.0.1 and the broadcast address out
	return []string{net.IPv4(127, byte(sum>>16)&0x7f|1, byte(sum>>8), byte(sum)|1).String()}
}
