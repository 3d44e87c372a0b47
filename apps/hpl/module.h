// Parts of the program that are loaded at run time, because not every machine has what they depend on: MPI,
// CUDA. They lie beside the program.
#ifndef HPL_MODULE_H
#define HPL_MODULE_H

#include <dlfcn.h>

#include <filesystem>
#include <stdexcept>
#include <string>

namespace hpl {

/// Returns the function `symbol` of NAME.so.
template <typename Function>
Function* of_module(const std::string& name, const char* symbol) {
  const auto file = std::filesystem::read_symlink("/proc/self/exe").parent_path() / (name + ".so");
  void* module = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (module == nullptr)
    throw std::runtime_error("hpl: " + name + " was asked for and cannot be loaded: " + dlerror() +
                             ". Build it: python apps/hpl/build.py.");
  return reinterpret_cast<Function*>(dlsym(module, symbol));
}

}  // namespace hpl

#endif
