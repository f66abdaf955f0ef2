package status

// ClientOf returns the client that the manager uses.
func ClientOf(m *Manager) Client { return m.opts.Client }
