package process

import "testing"

func TestVariableNames(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{VolumeVariable("data"), "STATUSD_VOLUME_DATA"},
		{VolumeVariable("web-cache-2"), "STATUSD_VOLUME_WEB_CACHE_2"},
		{MountVariable("/var/cache"), "STATUSD_MOUNT_VAR_CACHE"},
		{MountVariable("/srv/a.b/"), "STATUSD_MOUNT_SRV_A_B"},
		{MountVariable("/"), "STATUSD_MOUNT_"},
	} {
		if c.got != c.want {
			t.Errorf("got %s, want %s", c.got, c.want)
		}
	}
}
