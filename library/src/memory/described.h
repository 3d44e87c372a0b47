// How error messages name the two sides of an operation; the text is made only when something is wrong.
#pragma once

#include "device/shape.h"

namespace pw {

class Region;
class Remote;

Described described(const Region& region);
Described described(const Remote& remote);

}  // namespace pw
