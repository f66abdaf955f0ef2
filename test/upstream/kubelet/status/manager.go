package status

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"

	"github.com/statusd/statusd/journal"
	statusd "github.com/statusd/statusd/status"
	"github.com/statusd/statusd/test/upstream/kubelet/history"
)

// PodStatusProvider returns the newest status of a pod.
type PodStatusProvider interface {
	// GetPodStatus returns the status of a pod, and whether there is one. The UID of a mirror pod stands for its static pod.
	GetPodStatus(uid types.UID) (v1.PodStatus, bool)
}

// Manager keeps the statuses of a node's pods and sends them to the API server.
type Manager interface {
	PodStatusProvider

	// Start begins to send. It returns at once.
	Start(ctx context.Context)
	// AddPodUpdateNotifier adds a receiver of changes.
	AddPodUpdateNotifier(notifier PodUpdateNotifier)
	// SetPodStatus stores a status. It returns the status that is stored then, and whether the call changed it.
	SetPodStatus(logger klog.Logger, pod *v1.Pod, status v1.PodStatus) (v1.PodStatus, bool)
	// SetContainerReadiness records the result of a readiness probe.
	SetContainerReadiness(logger klog.Logger, podUID types.UID, containerID kubecontainer.ContainerID, ready bool)
	// SetContainerStartup records the result of a startup probe.
	SetContainerStartup(logger klog.Logger, podUID types.UID, containerID kubecontainer.ContainerID, started bool)
	// TerminatePod records that the pod has ended and that its containers will not change.
	TerminatePod(logger klog.Logger, pod *v1.Pod)
	// RemoveOrphanedStatuses forgets the pods that are not in the map.
	RemoveOrphanedStatuses(logger klog.Logger, podUIDs map[types.UID]bool)

	// GetPodResizeConditions returns the resize conditions of a pod, the pending one first.
	GetPodResizeConditions(podUID types.UID) []*v1.PodCondition
	// SetPodResizePendingCondition reports whether reason or generation are new.
	SetPodResizePendingCondition(podUID types.UID, reason, message string, observedGeneration int64) bool
	// SetPodResizeInProgressCondition returns the generation that is worked on, and whether the condition changed.
	SetPodResizeInProgressCondition(podUID types.UID, reason, message string, observedGeneration int64) (int64, bool)
	ClearPodResizePendingCondition(podUID types.UID)
	// ClearPodResizeInProgressCondition returns the generation that was worked on, and whether there was one.
	ClearPodResizeInProgressCondition(podUID types.UID) (int64, bool)
	IsPodResizeDeferred(podUID types.UID) bool
	IsPodResizeInfeasible(podUID types.UID) bool
	// BackfillPodResizeConditions takes over the resize conditions that pods of the API carry.
	BackfillPodResizeConditions(pods []*v1.Pod)

	// ObservePod takes a copy of a pod as it comes from the API server, once the table of pods has it. The stock
	// manager has no such method: the build adds the call to the kubelet's table of pods.
	ObservePod(pod *v1.Pod)
	// ServeHTTP answers questions about pods, below /statusd/.
	ServeHTTP(w http.ResponseWriter, r *http.Request)
}

// Host is what the manager learns of the kubelet that it is part of. The kubelet has the method by a file that the build
// adds; its tests give NewManager something else, and then there is no journal.
type Host interface {
	// StatusHost returns the name of the node, the kubelet's root directory, and the burst of its limit of requests.
	StatusHost() (nodeName, rootDir string, burst int)
}

// manager is the Manager of the kubelet.
type manager struct {
	*statusd.Manager
	kubeClient clientset.Interface
	podManager PodManager
	table      *table
	journal    *journal.Durable // nil: no journal
	history    *history.Store
	resizes    resizeGauges
	cleanup    sync.Once // the first one
	running    sync.WaitGroup

	// notifying is held while receivers are called, so that the last call for a pod has its newest status.
	notifying sync.Mutex
	notifiers []PodUpdateNotifier
}

// NewManager returns a manager that sends nothing before Start. Without a client it never sends.
func NewManager(kubeClient clientset.Interface, podManager PodManager, podDeletionSafety PodDeletionSafetyProvider, podStartupLatencyHelper PodStartupLatencyStateHelper) Manager {
	options := optionsFor(kubeClient, podDeletionSafety)
	m := &manager{kubeClient: kubeClient, podManager: podManager, table: newTable(podManager)}
	options.Pods = m.table
	historyFile := ""
	if host, ok := podDeletionSafety.(Host); ok {
		nodeName, rootDir, _ := host.StatusHost()
		historyFile = filepath.Join(rootDir, HistoryFile)
		if m.journal = openJournal(rootDir, nodeName, options.Logger); m.journal != nil {
			options.Journal = m.journal
		}
	}
	m.history = history.New(historyFile, options.Logger)
	options.Observer = newObserver(m.table, podStartupLatencyHelper, m.history)
	var err error
	if m.Manager, err = statusd.New(options); err != nil {
		// The options are those of optionsFor and none of a user's: a mistake in this file.
		panic(err)
	}
	return m
}

// optionsFor are the manager's, but for table, journal and observer.
func optionsFor(kubeClient clientset.Interface, podDeletionSafety PodDeletionSafetyProvider) statusd.Options {
	options := statusd.Options{
		Safety:  safety{podDeletionSafety},
		Reclaim: reclaimOf(podDeletionSafety),
		// The name under which the API server records the writes of a kubelet, so that a node's
		// fields keep their owner when this kubelet takes the place of another one, and back.
		FieldManager: "kubelet",
		Logger:       slog.New(logr.ToSlogHandler(klog.Background().WithName("statusd"))),
		Registerer:   registry(),
	}
	if kubeClient == nil {
		return options
	}
	// The tests of the kubelet say no name; their pods are those of a fake clientset.
	nodeName := "unknown"
	if host, ok := podDeletionSafety.(Host); ok {
		nodeName, _, options.Burst = host.StatusHost()
	}
	options.Client = statusd.NewClient(kubeClient.CoreV1(), nodeName)
	if limiter := kubeClient.CoreV1().RESTClient().GetRateLimiter(); limiter != nil {
		options.QPS = max(0, float64(limiter.QPS()))
	}
	return options
}

// Where journal and history are, below the kubelet's root directory.
const (
	JournalFile = "statusd/journal.db"
	HistoryFile = "statusd/history"
)

// openJournal opens the journal of ends. If it cannot be opened, the kubelet runs as the stock one does: it loses unsent
// statuses when it dies.
func openJournal(rootDir, nodeName string, logger *slog.Logger) *journal.Durable {
	file := filepath.Join(rootDir, JournalFile)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		logger.Error("no journal: ends of pods that are not sent do not survive the kubelet", "err", err)
		return nil
	}
	// A kubelet that is being replaced may need some seconds to end.
	opened, err := journal.Open(file, journal.Options{NodeName: nodeName, Logger: logger, LockTimeout: 10 * time.Second})
	if err != nil {
		logger.Error("no journal: ends of pods that are not sent do not survive the kubelet", "err", err)
		return nil
	}
	return opened
}

func (m *manager) Start(ctx context.Context) {
	logger := klog.FromContext(ctx)
	m.running.Go(func() { _ = m.history.Run(ctx) }) // what its disk refuses, the history itself says
	if m.kubeClient == nil {
		logger.Info("No API server, pod statuses are not sent")
		return
	}
	m.running.Go(func() {
		if err := m.Run(ctx); err != nil {
			logger.Error(err, "Pod statuses are not sent any more")
		}
	})
}

func (m *manager) SetPodStatus(logger klog.Logger, pod *v1.Pod, status v1.PodStatus) (v1.PodStatus, bool) {
	m.table.reported(pod)
	_, cached := m.GetPodStatus(pod.UID)
	if !cached && status.StartTime.IsZero() {
		status.StartTime = pod.Status.StartTime // if the table of pods has none
	}
	changed, err := m.Manager.SetPodStatus(pod, status)
	refused(logger, err, "pod", klog.KObj(pod), "podUID", pod.UID)
	if changed {
		m.notify(pod, !cached && pod.DeletionTimestamp == nil, false)
	}
	now, _ := m.GetPodStatus(pod.UID)
	return now, changed
}

func (m *manager) SetContainerReadiness(logger klog.Logger, podUID types.UID, containerID kubecontainer.ContainerID, ready bool) {
	m.flip(logger, podUID, containerID, func(id string) error { return m.Manager.SetContainerReadiness(podUID, id, ready) })
}

func (m *manager) SetContainerStartup(logger klog.Logger, podUID types.UID, containerID kubecontainer.ContainerID, started bool) {
	m.flip(logger, podUID, containerID, func(id string) error { return m.Manager.SetContainerStartup(podUID, id, started) })
}

func (m *manager) flip(logger klog.Logger, uid types.UID, container kubecontainer.ContainerID, set func(id string) error) {
	before, _ := m.Delivery(uid)
	err := set(container.String())
	refused(logger, err, "podUID", uid, "containerID", container)
	if after, _ := m.Delivery(uid); after.Version == before.Version {
		return
	}
	if pod, ok := m.podManager.GetPodByUID(uid); ok {
		m.notify(pod, false, false)
	}
}

func (m *manager) TerminatePod(logger klog.Logger, pod *v1.Pod) {
	m.table.reported(pod)
	if err := m.Manager.TerminatePod(pod); err != nil {
		refused(logger, err, "pod", klog.KObj(pod), "podUID", pod.UID)
		if !statusd.IsWarning(err) {
			return
		}
	}
	m.notify(pod, false, true)
}

// RemoveOrphanedStatuses is first called when the kubelet knows all pods of the node.
func (m *manager) RemoveOrphanedStatuses(_ klog.Logger, podUIDs map[types.UID]bool) {
	m.Manager.RemoveOrphanedStatuses(podUIDs)
	m.cleanup.Do(func() {
		m.history.Retain(func(uid types.UID) bool { return podUIDs[uid] }, time.Now())
	})
	m.resizes.retain(podUIDs)
}

// refused logs what of a report was not stored. The manager itself logs warnings.
func refused(logger klog.Logger, err error, keysAndValues ...any) {
	if err != nil && !statusd.IsWarning(err) {
		logger.Info("Pod status not stored", append(keysAndValues, "reason", err.Error())...)
	}
}
