package logs

import (
	"os"
	"strings"
	"testing"
)

// Lines as kernels, kubelets, runtimes and systemd write them, and what they mean. A line of one
// origin means nothing when another writes it.
func TestWhatLinesMean(t *testing.T) {
	for _, tt := range []struct {
		origin Origin
		text   string
		want   string // reasons; empty: nothing
	}{
		{Kernel, "Memory cgroup out of memory: Killed process 22675 (sh) total-vm:59948kB, anon-rss:24300kB, file-rss:1432kB, shmem-rss:0kB, UID:0 pgtables:104kB oom_score_adj:0", "OOMKilling"},
		{Kernel, "Out of memory: Killed process 1012 (heapster) total-vm:327128kB, anon-rss:306328kB, file-rss:11132kB", "OOMKilling"},
		{Kernel, "Killed process 1012 (a (b) c), UID 1000, total-vm:1kB, anon-rss:1kB, file-rss:1kB", "OOMKilling"},
		{KubeletLog, "Killed process 1012 (heapster) total-vm:327128kB, anon-rss:306328kB, file-rss:11132kB", ""},
		{Kernel, "INFO: task flush-253:16:1234 blocked for more than 120 seconds.", "TaskHung"},
		{Kernel, "INFO: task jbd2/sda1-8:2187 blocked in I/O wait for more than 122 seconds.", "TaskHung"},
		{Kernel, "INFO: task docker:20744 blocked for more than 120 seconds.", "TaskHung DockerHung"},
		{Kernel, "INFO: task containerd-shim-runc-v2:99 blocked for more than 120 seconds.", "TaskHung ContainerdHung"},
		{Kernel, "INFO: task umount.aufs:21568 blocked for more than 120 seconds.", "TaskHung AUFSUmountHung"},
		{Kernel, "unregister_netdevice: waiting for lo to become free. Usage count = 2", "UnregisterNetDevice"},
		{Kernel, "unregister_netdevice: waiting for eth0.100 to become free. Usage count = 1", "UnregisterNetDevice"},
		{Kernel, "BUG: unable to handle kernel NULL pointer dereference at 00000000000000c8", "KernelOops"},
		{Kernel, "BUG: kernel NULL pointer dereference, address: 0000000000000008", "KernelOops"},
		{Kernel, "BUG: unable to handle page fault for address: ffffffffc0000000", "KernelOops"},
		{Kernel, "divide error: 0000 [#1] SMP", "KernelOops"},
		{Kernel, "Oops: 0002 [#1] PREEMPT SMP NOPTI", "KernelOops"},
		{Kernel, "Oops: general protection fault, probably for non-canonical address 0xdead: 0000 [#1] SMP", "KernelOops"},
		{Kernel, "Kernel panic - not syncing: Fatal exception", "KernelPanic"},
		{Kernel, "watchdog: BUG: soft lockup - CPU#1 stuck for 22s! [kworker/1:0:17]", "SoftLockup"},
		{Kernel, "rcu: INFO: rcu_sched self-detected stall on CPU", "RCUStall"},
		{Kernel, "rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:", "RCUStall"},
		{Kernel, "EXT4-fs error (device sda1): ext4_find_entry:1455: inode #2: comm ls: reading directory lblock 0", "Ext4Error"},
		{Kernel, "EXT4-fs warning (device vda): ext4_dx_add_entry:2461: Directory index full!", "Ext4Warning"},
		{Kernel, "EXT4-fs (sda1): Remounting filesystem read-only", "FilesystemIsReadOnly"},
		{Kernel, "EXT4-fs (sda1): re-mounted 1ab2 r/w. Quota mode: none.", "clear ReadonlyFilesystem"},
		{Kernel, "BTRFS info (device sdb state E): forced readonly", "FilesystemIsReadOnly"},
		{Kernel, "BTRFS error (device sdb): bdev /dev/sdb errs: wr 1, rd 0, flush 0, corrupt 0, gen 0", "BtrfsError"},
		{Kernel, "Buffer I/O error on dev sdb1, logical block 0, async page read", "IOError"},
		{Kernel, "I/O error, dev sdb, sector 2048 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 0", "IOError"},
		{Kernel, "critical medium error, dev sdb, sector 2048 op 0x0:(READ)", "IOError"},
		{Kernel, "blk_update_request: I/O error, dev fd0, sector 0", "IOError"},
		{Kernel, "XFS (sdc): Metadata CRC error detected at xfs_agf_read_verify+0x9b", "XfsError"},
		{Kernel, "XFS (dm-3): log I/O error -5", "XfsError"},
		{Kernel, "XFS (sda): Corruption of in-memory data (0x8) detected at xfs_trans_cancel. Shutting down filesystem.", "XfsError XfsHasShutdown"},
		{Kernel, "XFS (sda): Filesystem has been shut down due to log error (0x2).", "XfsHasShutdown"},
		{Kernel, "XFS (sda): Ending clean mount", "clear XfsShutdown"},
		{Kernel, "nf_conntrack: nf_conntrack: table full, dropping packet", "ConntrackFull"},
		{Kernel, "neighbour: arp_cache: neighbor table overflow!", "NeighborTableFull"},
		{Kernel, "NETDEV WATCHDOG: eth0 (ixgbe): transmit queue 2 timed out", "NetDevWatchdog"},
		{Kernel, "EDAC MC0: 1 CE memory read error on CPU_SrcID#0_MC#0_Chan#1_DIMM#0", "MemoryReadError"},
		{Kernel, "EDAC MC1: 1 UE memory read error on CPU_SrcID#1", "MemoryError"},
		{Kernel, "{1}[Hardware Error]: event severity: fatal", "HardwareErrorFatal"},
		{Kernel, "{1}[Hardware Error]: event severity: corrected", "HardwareErrorCorrected"},
		{Kernel, "mce: [Hardware Error]: Machine check events logged", "MachineCheck"},
		{Kernel, "pcieport 0000:00:1c.5: PCIe Bus Error: severity=Corrected, type=Physical Layer", "PCIeError"},
		{Kernel, "CPU3: Core temperature above threshold, cpu clock throttled (total events = 1)", "CPUThrottled"},
		{Kernel, "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, GPU has fallen off the bus.", "GPUError"},
		{Kernel, "nvme nvme0: I/O 12 QID 1 timeout, aborting", "NVMeError"},
		{ServiceState, "Started kubelet.service - kubelet: The Kubernetes Node Agent.", "KubeletStart"},
		{ServiceState, "Started Kubernetes kubelet.", "KubeletStart"},
		{ServiceState, "Started kubelet: The Kubernetes Node Agent.", "KubeletStart"},
		{ServiceState, "Starting containerd.service - containerd container runtime...", "ContainerdStart"},
		{ServiceState, "Starting containerd container runtime...", "ContainerdStart"},
		{ServiceState, "Started containerd container runtime.", ""}, // the same start
		{ServiceState, "Starting Docker Application Container Engine...", "DockerStart"},
		{ServiceState, "Starting crio.service - Container Runtime Interface for OCI (CRI-O)...", "CRIOStart"},
		{ServiceState, "kubelet.service: Failed with result 'exit-code'.", "ServiceFailed"},
		{ServiceState, "Started kubelet-wrapper-cleanup.", ""},
		{KubeletLog, "Started kubelet", ""},
		{KubeletLog, `E1115 10:00:00.1 1 kubelet.go:2412] "Skipping pod synchronization" err="PLEG is not healthy: pleg was last seen active 3m5s ago"`, "PLEGUnhealthy"},
		{KubeletLog, `E1115 10:00:00.1 1 server.go:1] "Unable to authenticate" err="x509: certificate has expired or is not yet valid"`, "CertificateExpired"},
		{RuntimeLog, "failed to extract layer sha256:1: no space left on device", "CorruptImage"},
		{RuntimeLog, "Error trying v2 registry: failed to register layer: rename /var/lib/docker/image/a /var/lib/docker/image/b: directory not empty", "CorruptImage"},
		{RuntimeLog, "Handler for GET /containers/json returned error: readlink /var/lib/docker/overlay2/l/A: invalid argument", "CorruptOverlay"},
		{RuntimeLog, "panic: runtime error: index out of range", "RuntimePanic"},
		{Kernel, "", ""},
		{Kernel, "EXT4-fs (vda): mounted filesystem 12 ro with ordered data mode. Quota mode: none.", ""},
		{Kernel, "usb 1-1: new high-speed USB device number 2 using xhci_hcd", ""},
		{Kernel, "docker0: port 1(veth1) entered blocking state", ""},
	} {
		rules, err := compile(DefaultRules())
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range find(rules, tt.origin, tt.text) {
			if f.clears {
				got = append(got, "clear", f.Condition)
			} else {
				got = append(got, f.Reason)
			}
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s: %q\n means %q, want %q", tt.origin, tt.text, got, tt.want)
		}
		// Whatever means something must be found by its texts.
		seen := false
		newPrefilter(rules, []Origin{tt.origin}).lines([]byte("before\n"+tt.text+"\nafter\n"), func(line []byte) { seen = seen || string(line) == tt.text })
		if tt.want != "" && !seen {
			t.Errorf("%q is not searched for by any of its texts", tt.text)
		}
	}
}

func TestMistakesInRulesAreNamed(t *testing.T) {
	_, err := ParseRules("x.yaml", []byte(`apiVersion: statusd/v1alpha1
kind: LogRules
rules:
- {origin: kernle, reason: "a b", severity: bad, match: "(", clear: "x"}
- {origin: kernel, reason: Fine, severity: info, match: x, frequent: {condition: Often, count: 1, within: 1m}}
`))
	for _, want := range []string{"x.yaml: rules[0]", `"kernle": want one of`, "want a word in CamelCase", "want info, warning or error", "missing closing )", "clear without a condition", "rules[1] (Fine)", "count of 2 to"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not have %q: %v", want, err)
		}
	}
	for _, text := range []string{"", "rules: []\n", "apiVersion: statusd/v1alpha1\nkind: LogRules\nrulse: []\n", "apiVersion: statusd/v1alpha1\nkind: LogRules\n---\nkind: LogRules\n"} {
		if _, err := ParseRules("x.yaml", []byte(text)); err == nil {
			t.Errorf("%q is no mistake", text)
		}
	}
}

func TestVictimsAreFound(t *testing.T) {
	id := strings.Repeat("ab", 32)
	var a announcements
	a.take("oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=x,mems_allowed=0,oom_memcg=/kubepods/y,task_memcg=/kubepods/pod0123456789abcdef0123456789abcdef/" + id + ",task=a b,pid=7,pid=42,uid=0")
	if v := a.victim("42", "sh"); v == nil || v.UID != "0123456789abcdef0123456789abcdef" || v.ContainerID != id {
		t.Errorf("the victim of the announcement is %+v", v)
	}
	if v := a.victim("43", "sh"); v == nil || v.UID != "" {
		t.Errorf("another process is %+v", v)
	}
	for range 10 * maxAnnouncements {
		a.take("oom-kill:constraint=CONSTRAINT_NONE,task_memcg=/,task=x,pid=" + strings.Repeat("1", 1+len(a.order)%7) + ",uid=0")
	}
	if len(a.groups) > maxAnnouncements || len(a.order) != len(a.groups) {
		t.Errorf("%d announcements are kept", len(a.groups))
	}
}

// docs/reference/log-problems.md names each reason and condition of the default rules.
func TestTheDocumentNamesEachReason(t *testing.T) {
	text, err := os.ReadFile("../../../docs/reference/log-problems.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range DefaultRules() {
		for _, name := range append(r.conditions(), r.Reason) {
			if !strings.Contains(string(text), "`"+name+"`") {
				t.Errorf("docs/reference/log-problems.md does not name %s", name)
			}
		}
	}
}
