// Mathematical functions of vectors.
#pragma once

#include "kernels/elementwise/vecmath/error_function.hpp"
#include "kernels/elementwise/vecmath/exponential.hpp"
#include "kernels/elementwise/vecmath/logarithm.hpp"
#include "kernels/elementwise/vecmath/power.hpp"
#include "kernels/elementwise/vecmath/trigonometric.hpp"
