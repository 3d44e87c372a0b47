// Helps error messages: quotes a value safely, and suggests what the user may have meant.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace pw::route {

/// Returns the text in double quotes, with control characters replaced, cut after 60 characters.
std::string in_quotes(std::string_view text);

/// Returns the word nearest to `text`, or an empty text if none is near (more than a third of the letters
/// differ).
std::string nearest(std::string_view text, std::span<const std::string> words);

/// Returns `; did you mean "x"? Allowed are "x", "y" and "z"`.
std::string allowed(std::string_view text, std::span<const std::string> words);

}  // namespace pw::route
