//! One endpoint under command: the protocol over a byte stream, driving engine and meters.
