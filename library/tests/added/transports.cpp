// The list of transports with one more.
#define make_transports make_those_of_the_library
#include "transport/transports.cpp"
#undef make_transports

namespace pw {

std::unique_ptr<Transport> make_letters(const Surroundings& surroundings);  // letters.cpp

std::vector<std::unique_ptr<Transport>> make_transports(const Surroundings& surroundings) {
  auto all = make_those_of_the_library(surroundings);
  all.push_back(make_letters(surroundings));
  return all;
}

}  // namespace pw
