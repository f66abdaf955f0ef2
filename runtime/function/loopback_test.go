package function_test

import (
	"fmt"
	"net"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/runtime/function"
)

func TestLoopback_EachPodHasItsOwnAddress(t *testing.T) {
	pods := map[string]int{"127.0.0.1": -1}
	for i := range 100 {
		pod := newPod()
		pod.UID = types.UID(fmt.Sprint("uid-", i))
		ips := function.Loopback(pod)
		if len(ips) != 1 || !net.ParseIP(ips[0]).IsLoopback() {
			t.Fatalf("got %v, want a loopback address", ips)
		}
		if other, taken := pods[ips[0]]; taken {
			t.Errorf("%s is of pod %d and of pod %d", ips[0], other, i)
		}
		pods[ips[0]] = i
		if again := function.Loopback(pod); again[0] != ips[0] {
			t.Errorf("pod %d has %s, then %s", i, ips[0], again[0])
		}
	}
}
