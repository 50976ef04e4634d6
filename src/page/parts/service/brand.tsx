/** The name of the program, with the icon of the page. */
export function Brand({ name, href }: { name: string; href: string }) {
  return (
    <a class="brand" href={href}>
      <img
        src={document.querySelector<HTMLLinkElement>("link[rel=icon]")?.href}
        alt=""
        width="28"
        height="28"
      />
      bulkgen <span>{name}</span>
    </a>
  );
}
