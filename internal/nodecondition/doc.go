// Package nodecondition maintains some conditions of a Node and leaves all others unchanged: [Keeper] while a process
// runs, [Write] once. Each part of a process is an [Owner] of some condition types; one keeper writes for all owners.
//
// Conditions are written by strategic merge patches that contain the owned types alone, so that they coexist with
// the conditions of a kubelet. The right to patch nodes/status is enough: the keeper reads the Node from the
// answers to its patches, starting with an empty patch. Each patch contains the UID, so that a re-created Node is
// noticed. The transition time stays the same while the status does, also across restarts.
//
// A change by another writer lasts until the next change or heartbeat.
package nodecondition
