// SPDX-License-Identifier: Apache-2.0
// Prices of options: stock price, strike price and time in, call and put out.
#version 450
layout(local_size_x = 256) in;
layout(std430, binding = 0) readonly buffer Options { vec4 options[]; };
layout(std430, binding = 1) writeonly buffer Prices { vec2 prices[]; };
layout(push_constant) uniform Scalars { uint n; float rate; };

float normal_distribution(float d)
{
    const float k = 1.0 / (1.0 + 0.2316419 * abs(d));
    float sum = 1.330274429;

    sum = fma(sum, k, -1.821255978);
    sum = fma(sum, k, 1.781477937);
    sum = fma(sum, k, -0.356563782);
    sum = fma(sum, k, 0.31938153);
    sum = sum * k * 0.39894228 * exp(-0.5 * d * d);
    return d > 0 ? 1.0 - sum : sum;
}

void main()
{
    const uint i = gl_GlobalInvocationID.x;

    if (i >= n)
        return;
    const vec4 option = options[i];
    const float volatility = option.w, root = sqrt(option.z);
    const float d1 = (log(option.x / option.y) + (rate + 0.5 * volatility * volatility) * option.z) / (volatility * root);
    const float d2 = d1 - volatility * root, n1 = normal_distribution(d1), n2 = normal_distribution(d2);
    const float strike = option.y * exp(-rate * option.z);

    prices[i] = vec2(option.x * n1 - strike * n2, strike * (1.0 - n2) - option.x * (1.0 - n1));
}
