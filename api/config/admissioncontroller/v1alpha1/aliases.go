package v1alpha1

import (
	shared "github.com/espalier-project/espalier/api/config/shared/v1alpha1"
)

// Aliases are the keys of older configurations, with the keys that they stand for (ACC-2).
var Aliases = []shared.Alias{
	{Old: "server.https", New: "server.webhooks"},
	{Old: "server.webhooks.tls.serverCertPath", Dropped: "name the folder with tls.crt and tls.key in serverCertDir"},
	{Old: "server.webhooks.tls.serverKeyPath", Dropped: "name the folder with tls.crt and tls.key in serverCertDir"},
}
