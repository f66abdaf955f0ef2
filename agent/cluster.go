package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/statusd/statusd/podstatus"
)

// joinedFile in the state directory marks the state of a node of a cluster.
const joinedFile = "joined"

// claimState prevents a standalone agent from using the state of a cluster node: no source would
// list the pods from the API, so the agent would end them as orphans, and the unsent statuses in
// the journal would be lost. It is called once the state is open.
func (a *Agent) claimState() error {
	marker := filepath.Join(a.config.StateDir, joinedFile)
	if a.client != nil {
		markJoined(marker)
		return nil
	}
	joined, err := a.isJoinedState(marker)
	if err != nil {
		return err
	}
	if !joined {
		return nil
	}
	if !a.config.LeaveCluster {
		return fmt.Errorf("agent: %s is the state of a node of a cluster, and without a kubeconfig its pods of the API would be ended; "+
			"set kubeconfig, or another stateDir, or start with --leave-cluster to end them", a.config.StateDir)
	}
	a.log.Warn("leaving the cluster: pods of the api are ended", "stateDir", a.config.StateDir)
	if err := os.Remove(marker); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("agent: leave the cluster: %w", err)
	}
	return nil
}

// markJoined writes the marker. A full or read-only disk does not stop the agent: isJoinedState
// also finds the pods from the API.
func markJoined(marker string) {
	if _, err := os.Stat(marker); err == nil {
		return
	}
	_ = os.WriteFile(marker, []byte("This is the state of a node of a cluster; statusd needs a kubeconfig to use it.\n"), 0o600)
}

// isJoinedState looks for the marker, and for pods that come from an API server.
func (a *Agent) isJoinedState(marker string) (bool, error) {
	if _, err := os.Stat(marker); err == nil {
		return true, nil
	}
	found, err := a.runtime.Pods(context.Background())
	if err != nil {
		return false, fmt.Errorf("agent: runtime: %w", err)
	}
	for _, pod := range found {
		if pod.Manifest != nil && !podstatus.IsStatic(pod.Manifest) {
			return true, nil
		}
	}
	return false, nil
}
