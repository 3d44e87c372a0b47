// Which devices the processes of a host were shown. Launchers and wrappers hide devices by environment
// variables.
#pragma once

#include <cstdint>

namespace pw {

/// A number that differs between processes that were shown different devices. Reads variables alone, so that
/// a program that uses no device starts no driver.
uint64_t shown_devices();

/// Tells the devices of this process that some process of the host was shown others, and so maps memory of
/// devices that are hidden from it. Holds to the end of the process.
void expect_hidden_peers();
bool expects_hidden_peers();

}  // namespace pw
