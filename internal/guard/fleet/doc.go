// Package fleet bounds how many kubelets of a cluster the guards of its nodes restart at once: a semaphore of Leases.
//
//	bound := fleet.New(fleet.Options{Leases: client.CoordinationV1().Leases("statusd"), Node: "node-1", Nodes: fleet.Count(client)})
//	err := bound.Acquire(ctx, "ProcessGone") // wraps guard.ErrFleetBusy if other nodes have all slots
//
// Each slot is a Lease. A node takes a free or expired slot by an update with the resource version that it has read, so that only one of
// two nodes gets the slot. A slot counts for [Duration] unless it is released before: restarts that do not help use up the slots, and
// bound the number of restarts that a broken version causes in an hour.
package fleet
