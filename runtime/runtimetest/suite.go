package runtimetest

import (
	"testing"

	"github.com/statusd/statusd/runtime"
)

// Config says how to make the runtime under test.
type Config struct {
	// Open opens the runtime with its state in a directory. After close the same
	// directory is opened again: that is a restart of the node's agent, and containers
	// run on through it.
	Open func(t *testing.T, dir string) (rt runtime.Runtime, close func())
	// Image is an image with /bin/sh.
	Image string
	// MissingImage is an image that cannot be pulled. Empty if there is no such thing.
	MissingImage string
	// DropsCarriageReturns says that the log lacks carriage returns at the ends of lines, as containerd's does: nothing that reads the log can bring them back.
	DropsCarriageReturns bool
}

// Run runs the suite.
func Run(t *testing.T, config Config) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, *fixture)
	}{
		{"ExitCode", testExitCode},
		{"ExitBySignal", testExitBySignal},
		{"RunningContainerIsListed", testRunningContainerIsListed},
		{"EachStartHasItsOwnID", testEachStartHasItsOwnID},
		{"LastTwoAttemptsAreKept", testLastTwoAttemptsAreKept},
		{"NoSecondContainerOfAName", testNoSecondContainerOfAName},
		{"UnknownPodsAndContainers", testUnknown},
		{"CommandNotFound", testCommandNotFound},
		{"CommandNotExecutable", testCommandNotExecutable},
		{"WorkingDirMissing", testWorkingDirMissing},
		{"Image", testImage},
		{"MissingImage", testMissingImage},
		{"ManyAtOnce", testManyAtOnce},
		{"ListsBelongToTheCaller", testListsBelongToTheCaller},

		{"StopIsObeyed", testStopIsObeyed},
		{"StopSignal", testStopSignal},
		{"StopWithoutGraceKills", testStopWithoutGraceKills},
		{"KilledAfterGrace", testKilledAfterGrace},
		{"GraceIsShortened", testGraceIsShortened},
		{"GraceIsNotExtended", testGraceIsNotExtended},
		{"StopOfAnExitedContainer", testStopOfAnExitedContainer},
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
		{"RemoveNeedsAnEnd", testRemoveNeedsAnEnd},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, newFixture(t, config)) })
	}
}
