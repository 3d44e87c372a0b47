// Finds out which devices the processes of a host can see. Launchers and wrappers hide devices with
// environment variables.
#pragma once

#include <cstdint>

namespace pw {

/// Returns a number that differs between processes that see different devices. It reads only variables, so a
/// program that uses no device starts no driver.
uint64_t shown_devices();

/// Tells the devices of this process that some process of the host sees other devices, and so maps memory of
/// devices that are hidden from it. This holds to the end of the process.
void expect_hidden_peers();
bool expects_hidden_peers();

}  // namespace pw
