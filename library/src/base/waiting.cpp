#include "base/waiting.h"

namespace pw::settings {

const ChoiceSetting<WaitPolicy> wait{
    "wait", "busy-poll|blocking", "busy-poll",
    "How the host waits. busy-poll: polls, for the lowest latency, and uses a whole core; blocking: sleeps "
    "until it is woken."};

}  // namespace pw::settings
