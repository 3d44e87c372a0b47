// How many random cases a test tries. Sanitizers make each many times as slow, so that under them there are a
// fifth as many; `make test-long` tries all of them, without.
#pragma once

#include <algorithm>
#include <cstddef>

namespace pw {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#elif defined(__has_feature)
constexpr bool kSanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
constexpr bool kSanitized = false;
#endif

constexpr size_t rounds(size_t all) { return kSanitized ? std::max<size_t>(1, all / 5) : all; }

}  // namespace pw
