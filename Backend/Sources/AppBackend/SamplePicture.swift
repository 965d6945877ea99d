import HTTPMessages

/// The picture of the rich-push sample: a red disc, 32 by 32.
enum SamplePicture {
    static let png = Base64.decode(encoded) ?? []

    private static let encoded =
        "iVBORw0KGgoAAAANSUhEUgAAACAAAAAgCAIAAAD8GO2jAAAAb0lEQVR42u3WMQ7AIAxDUR+sJ+H+6tK9A1PXigZEhbEIipT5vy0J"
        + "8n1NHSwBnOkwZxSodX9JGK+3DVDqDQOses0AsW4a4Na/Buj1wtgG4NbfRgAB+AFiVfQA09e14uAoTqbi6CveFsXjpXgdfXzXD4fw"
        + "FOmn7ky3AAAAAElFTkSuQmCC"
}
