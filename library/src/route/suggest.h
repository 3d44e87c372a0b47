// Help inside error messages: quoting a value safely, and naming what the user may have meant.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace pw::route {

/// The text in double quotes, control characters replaced, cut after 60 characters.
std::string in_quotes(std::string_view text);

/// The word nearest to `text`, or empty when none is near (more than a third of the letters differ).
std::string nearest(std::string_view text, std::span<const std::string> words);

/// `; did you mean "x"? Allowed are "x", "y" and "z"`.
std::string allowed(std::string_view text, std::span<const std::string> words);

}  // namespace pw::route
