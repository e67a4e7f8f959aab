# SPDX-License-Identifier: Apache-2.0
"""Blender as a Python module: Cycles renders the default scene."""

import steps

# Cycles has machine code for the usual capabilities, and takes its PTX for one that it has none for.
steps.begin(CUTTLE_COMPUTE_CAPABILITY="8.7")

import tempfile

import bpy
import numpy

preferences = bpy.context.preferences.addons["cycles"].preferences
preferences.compute_device_type = "CUDA"
preferences.get_devices()
for device in preferences.devices:
    device.use = device.type == "CUDA"
steps.framework("Blender", bpy.app.version_string)

render = bpy.context.scene.render
render.engine = "CYCLES"
render.resolution_x, render.resolution_y, render.resolution_percentage = 64, 36, 100
render.image_settings.file_format = "OPEN_EXR"
bpy.context.scene.cycles.samples = 16
bpy.context.scene.cycles.use_denoising = False


def pixels(device):
    bpy.context.scene.cycles.device = device
    with tempfile.NamedTemporaryFile(suffix=".exr") as file:
        render.filepath = file.name
        bpy.ops.render.render(write_still=True)
        image = bpy.data.images.load(file.name)
        return numpy.array(image.pixels[:])


# Paths of light part where one of them rounds differently, so single pixels differ a little.
steps.step("the default scene, 64 x 36, 16 samples", lambda: pixels("GPU"), lambda: pixels("CPU"), 0.05)
steps.end()
