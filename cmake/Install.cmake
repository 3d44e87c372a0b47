# Installation: headers, library, CMake package config and pkg-config file.
