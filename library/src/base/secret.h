// The secrets of a job: as text, and derived separately for each purpose, so that a proof for one purpose is
// useless for another.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/siphash.h"

namespace pw {

std::string to_hex(std::span<const std::byte> bytes);

/// Parses 32 hexadecimal digits; `name` says where the text came from. Throws Error(PW_INVALID_ARGUMENT),
/// which does not show the secret.
Secret parse_secret(std::string_view text, const std::string& name);

/// Returns the secret for one purpose. It reveals neither `secret` nor the secret for another purpose.
Secret derive_secret(const Secret& secret, std::string_view purpose);

}  // namespace pw
