package process

import "strings"

// VariablePrefix starts the names of all variables that this runtime sets by itself. Pods
// may read them, also as $(NAME) in command, args and env, but not define their own.
const VariablePrefix = "STATUSD_"

// TerminationLogVariable names the variable with the file that a container writes its
// termination message to, also where nothing can be mounted at terminationMessagePath.
const TerminationLogVariable = VariablePrefix + "TERMINATION_LOG"

// VolumeVariable names the variable with the directory of a volume that the container
// mounts, where nothing can be mounted: STATUSD_VOLUME_WEB_CACHE for "web-cache".
func VolumeVariable(volume string) string {
	return VariablePrefix + "VOLUME_" + variableWord(volume)
}

// MountVariable names the variable with the directory or file that would be at a mount
// path, sub-path included, where nothing can be mounted: STATUSD_MOUNT_VAR_CACHE for
// "/var/cache".
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
