package process

import "strings"

// VariablePrefix is the prefix of the names of all variables that this runtime sets. Pods may read
// them, also as $(NAME) in command, args and env, but not define their own.
const VariablePrefix = "STATUSD_"

// TerminationLogVariable is the variable with the path of the termination message file, also set
// where terminationMessagePath cannot be mounted.
const TerminationLogVariable = VariablePrefix + "TERMINATION_LOG"

// VolumeVariable returns the name of the variable with the directory of a volume, for runtimes that
// cannot mount volumes: STATUSD_VOLUME_WEB_CACHE for "web-cache".
func VolumeVariable(volume string) string {
	return VariablePrefix + "VOLUME_" + variableWord(volume)
}

// MountVariable returns the name of the variable with the source of a mount path, subPath included,
// for runtimes that cannot mount volumes: STATUSD_MOUNT_VAR_CACHE for "/var/cache".
func MountVariable(mountPath string) string {
	return VariablePrefix + "MOUNT_" + variableWord(mountPath)
}

// variableWord turns text into upper-case letters, digits and single underscores.
func variableWord(text string) string {
	words := strings.FieldsFunc(strings.ToUpper(text), func(r rune) bool {
		return (r < 'A' || r > 'Z') && (r < '0' || r > '9')
	})
	return strings.Join(words, "_")
}
