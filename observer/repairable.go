package observer

import "github.com/statusd/statusd/observe"

// repairable are the kinds that can be repaired safely.
var repairable = []observe.Kind{observe.ContainerWithoutPod, observe.RunningWithoutContainer}
