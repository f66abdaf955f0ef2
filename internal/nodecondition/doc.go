// Package nodecondition keeps conditions of a Node as they are set, and leaves all others alone: [Keeper] for as
// long as a process runs, [Write] once. Each part of a process is an [Owner] of some types; one keeper writes for all.
//
// Conditions are written by strategic merge patches that name the own types alone, so that they live beside those
// of a kubelet. The right to patch nodes/status is enough: what the Node has is taken from the answers to the
// patches, the first of which is empty. The UID is part of each patch, so that a Node that was created again is
// noticed. The time of a transition stays while the status does, also across restarts.
//
// What another writer makes of such a condition lasts until the next change or heartbeat.
package nodecondition
