// Texts that name the two sides of an operation in error messages; they are made only if something is wrong.
#pragma once

#include "device/shape.h"

namespace pw {

class Region;
class Remote;

Described described(const Region& region);
Described described(const Remote& remote);

}  // namespace pw
