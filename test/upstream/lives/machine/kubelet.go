package machine

import (
	"context"
	"net"
	"path/filepath"

	"github.com/statusd/statusd/test/stock"
)

// kubelet is the stock kubelet with containerd.
type kubelet struct {
	containerd *stock.Containerd
	stock.Kubelet
	doors   bool // asks who clients are and what they may do, as it does by default
	statusd bool // is the kubelet with statusd's manager
}

// settings of the recordings: $DIR/disk is small, and a shutdown is announced to the kubelet, which is off by default.
const settings = `evictionHard: {memory.available: 1Mi, nodefs.available: 30%}
evictionPressureTransitionPeriod: 1s
shutdownGracePeriod: 10s
shutdownGracePeriodCriticalPods: 3s
`

func (k *kubelet) start(ctx context.Context, m *Machine) error {
	if k.containerd == nil {
		k.containerd = &stock.Containerd{Dir: m.dir, Launch: m.start}
		k.Kubelet = stock.Kubelet{
			Dir: m.dir, Launch: m.start, Binary: k.binary(), NodeName: NodeName, Kubeconfig: m.kubeconfig, Settings: settings,
		}
		if k.doors {
			k.Authority = filepath.Join(m.PKI(), "ca.crt")
		}
		var err error
		if k.Port, err = freePort(); err != nil {
			return err
		}
	}
	if err := k.containerd.Start(ctx); err != nil {
		return err
	}
	return k.Kubelet.Start()
}

func (k *kubelet) binary() string {
	if k.statusd {
		return kubeletStatusdBinary()
	}
	return kubeletBinary()
}

func (k *kubelet) kill() { k.Process().Kill() }

func (k *kubelet) lost() {
	k.kill()
	k.containerd.Process().Kill()
}

// freePort is one of the loopback interface that was free just now.
func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}
