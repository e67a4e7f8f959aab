# SPDX-License-Identifier: Apache-2.0
# The page of `cuttle profile` in a browser: its script draws every event, and the picture is not empty.
include(${CMAKE_CURRENT_LIST_DIR}/check.cmake)
file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK})
run(0 "" ${CC} -I${SOURCE}/include ${CMAKE_CURRENT_LIST_DIR}/traced.c -o ${WORK}/traced -L${LIBRARY_FOLDER} -lcuda -pthread)
run(0 "" ${CUTTLE} profile --trace ${WORK}/trace.json --html ${WORK}/page.html ${WORK}/traced graph)

# All events: those of three threads, and of two streams.
file(STRINGS ${WORK}/trace.json events REGEX "\"ph\": \"X\"")
list(LENGTH events n_events)
set(browser ${BROWSER} --headless --no-sandbox --disable-gpu --user-data-dir=${WORK}/user)
run(0 "<span id=\"status\">${n_events} events in 5 tracks, [0-9.]+ m?s</span>" ${browser} --dump-dom file://${WORK}/page.html)

# The canvas has events of every section's colour; zooming halves the view; what lies under the pointer is found. A script that the test adds says so.
file(READ ${WORK}/page.html page)
string(REPLACE "</body>" "<p id=\"result\"></p><script>
const pixels = context.getImageData(0, 0, canvas.width, canvas.height).data, seen = [0, 0, 0, 0];
for (let i = 0; i < pixels.length; i += 4)
  colors.forEach((color, k) => { seen[k] += '#' + [0, 1, 2].map(j => pixels[i + j].toString(16).padStart(2, '0')).join('') === color; });
view(end / 4, end / 2);
const isZoomed = Math.abs(to - from - end / 2) < end / 1e6;
const row = rows.findIndex(row => row.events.some(event => event.category === 0)), kernel = rows[row].events.find(event => event.category === 0);
view(kernel.begin, kernel.duration);
const found = find(labelWidth + 50, axisHeight + rowHeight * row + 5);
document.getElementById('result').textContent = ['colours', seen.filter(n => n > 0).length, isZoomed, data.names[found.name]].join(' ');
</script></body>" page "${page}")
file(WRITE ${WORK}/tried.html "${page}")
run(0 "<p id=\"result\">colours 4 true add_number</p>" ${browser} --dump-dom file://${WORK}/tried.html)
