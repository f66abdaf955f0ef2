package runtimetest

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/runtime"
)

// Config configures the suite for the runtime under test.
type Config struct {
	// Open opens the runtime with its state in a directory. After close the same directory is
	// opened again, as in a restart of the node's agent; containers keep running meanwhile.
	Open func(t *testing.T, dir string) (rt runtime.Runtime, close func())
	// Image is an image with /bin/sh.
	Image string
	// Script is for a runtime whose containers cannot run shell scripts on this machine, such as a batch system or a cloud: it
	// returns a container with the behavior of a kind, and false if the runtime cannot run one. The suite is then the part that
	// every runtime must pass. Nil: containers run shell scripts, and the whole suite runs.
	Script func(kind Kind) (container v1.Container, ok bool)
	// Ephemeral means that containers end and are forgotten when the runtime is closed.
	Ephemeral bool
	// MissingImage is an image that cannot be pulled; empty if the runtime has no such image.
	MissingImage string
	// DropsCarriageReturns means that the log lacks carriage returns at the ends of lines, as containerd's log does.
	DropsCarriageReturns bool
}

// Run runs the suite.
func Run(t *testing.T, config Config) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, *fixture)
	}{
		{"ExitCode", testExitCode},
		{"EachStartHasItsOwnID", testEachStartHasItsOwnID},
		{"LastTwoAttemptsAreKept", testLastTwoAttemptsAreKept},
		{"NoSecondContainerOfAName", testNoSecondContainerOfAName},
		{"UnknownPodsAndContainers", testUnknown},
		{"StartError", testStartError},
		{"ListsBelongToTheCaller", testListsBelongToTheCaller},
		{"PodsAreInOrder", testPodsAreInOrder},
		{"StopEndsTheContainer", testStopEndsTheContainer},
		{"StopOfAnExitedContainer", testStopOfAnExitedContainer},
		{"RemoveNeedsAnEnd", testRemoveNeedsAnEnd},

		{"CreatedContainerRuns", testCreatedContainerRuns},
		{"CreatedContainerIsStopped", testCreatedContainerIsStopped},
		{"RestartWhileCreated", testRestartWhileCreated},
		{"StopOfCreatedAfterRestart", testStopOfCreatedAfterRestart},
		{"RestartWhileRunning", testRestartWhileRunning},
		{"RestartKeepsAnExit", testRestartKeepsAnExit},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, newFixture(t, config)) })
	}
	if config.Script == nil {
		runShells(t, config)
	}
}

// runShells runs what is left of the suite for a runtime whose containers are shells.
func runShells(t *testing.T, config Config) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, *fixture)
	}{
		{"ExitBySignal", testExitBySignal},
		{"RunningContainerIsListed", testRunningContainerIsListed},
		{"CommandNotFound", testCommandNotFound},
		{"CommandNotExecutable", testCommandNotExecutable},
		{"WorkingDirMissing", testWorkingDirMissing},
		{"Image", testImage},
		{"MissingImage", testMissingImage},
		{"ManyAtOnce", testManyAtOnce},

		{"StopIsObeyed", testStopIsObeyed},
		{"StopSignal", testStopSignal},
		{"StopWithoutGraceKills", testStopWithoutGraceKills},
		{"KilledAfterGrace", testKilledAfterGrace},
		{"GraceIsShortened", testGraceIsShortened},
		{"GraceIsNotExtended", testGraceIsNotExtended},
		{"DescendantsEndWithTheContainer", testDescendantsEndWithTheContainer},
		{"DescendantsEndWithAKill", testDescendantsEndWithAKill},

		{"Environment", testEnvironment},
		{"Expansion", testExpansion},
		{"WorkingDir", testWorkingDir},
		{"EmptyDirIsShared", testEmptyDirIsShared},
		{"SubPath", testSubPath},
		{"Logs", testLogs},
		{"LongLine", testLongLine},
		{"LogSelections", testLogSelections},
		{"LogsOfAnyBytes", testLogsOfAnyBytes},
		{"Follow", testFollow},
		{"FollowEndsWithItsContext", testFollowEndsWithItsContext},
		{"TerminationMessage", testTerminationMessage},
		{"TerminationMessageFromLogs", testTerminationMessageFromLogs},
		{"TerminationMessageIsCutBetweenRunes", testTerminationMessageIsCut},
		{"Exec", testExec},
		{"ExecIsKilledWithItsContext", testExecIsKilledWithItsContext},
		{"ExecNeedsARunningContainer", testExecNeedsARunningContainer},

		{"ExecStream", testExecStream},
		{"ExecStreamTerminal", testExecStreamTerminal},
		{"ExecStreamIsKilledWithItsContext", testExecStreamIsKilledWithItsContext},
		{"ExecStreamEndsWithTheContainer", testExecStreamEndsWithTheContainer},
		{"Attach", testAttach},
		{"PortForward", testPortForward},
		{"Stats", testStats},

		{"RestartAdopts", testRestartAdopts},
		{"ExitDuringAbsence", testExitDuringAbsence},
		{"StopOutlivesTheAgent", testStopOutlivesTheAgent},
		{"RestartKeepsExits", testRestartKeepsExits},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, newFixture(t, config)) })
	}
}
