package outside

import ()

const root = "../../.."
